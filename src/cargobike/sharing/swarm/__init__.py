"""How members exchange what they have: the catalogue, and pieces.

`picking` decides which piece is asked of which member, and is pure; `answering` gives others what they ask for;
`gossip` spreads signed records; `lending` lets members ask that we dialled, `lenders` asks members that dialled us.
"""
