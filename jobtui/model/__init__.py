"""Records, ids and enums that every layer speaks. Imports nothing of jobtui outside itself, does no I/O."""
