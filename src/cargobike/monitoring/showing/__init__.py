"""Judgements for people: text, notebooks, a page."""
