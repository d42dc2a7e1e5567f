"""Text that wants to be markup, to drive the terminal or to break columns: wherever outside text can be.

`texts` are the texts, `records` every record with them in all its fields, `site` files of a job system with
them in names and contents; the tests beside put them through every widget, every screen and every command. A
new widget or command needs an entry in the table of its test, which fails until there is one.
"""
