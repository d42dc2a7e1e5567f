"""Records to cells and text: columns, tables, JSON, safe display. Uses Rich at the most, never Textual."""
