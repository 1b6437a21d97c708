"""Fairlead backend: ONNX Runtime"""
