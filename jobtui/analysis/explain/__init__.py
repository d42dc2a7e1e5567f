"""The verdict on a job, from its evidence."""
