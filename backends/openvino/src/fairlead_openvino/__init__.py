"""Fairlead backend: OpenVINO"""
