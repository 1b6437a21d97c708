"""What ``pytest --pyargs fairlead_conformance --backend=NAME`` collects: the plugin makes an item of each case here."""

__all__: list[str] = []
