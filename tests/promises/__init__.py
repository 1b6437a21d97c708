"""What is promised of compiled programs, each promise through each backend; `make promises` writes it down."""
