"""What is going on in a project: cards for the start page, and search over everything, of what products register.

Products are asked in the background and their last answers are kept, so that no page waits for a long list.
"""
