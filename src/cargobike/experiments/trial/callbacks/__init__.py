"""Callbacks for other frameworks: they report what a framework measured, and end its training when a trial is to stop.

One module for each framework, which is imported with it; the public door is `cargobike.callbacks`.
"""
