"""What is drawn: Textual widgets that take records from their screen and never see the store."""
