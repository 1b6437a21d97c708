"""Fairlead backend: torch's Inductor compiler"""
