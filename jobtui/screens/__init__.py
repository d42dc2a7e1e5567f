"""One file for each screen; a screen moves records from the store to widgets and answers their messages."""
