"""What is the matter with a job: a verdict out of the evidence on it."""
