"""Lowering from the Fairlead IR to ONNX, shared by backends"""
