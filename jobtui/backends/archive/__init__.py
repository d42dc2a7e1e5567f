"""Archives of job scripts: directories, Elasticsearch, Kafka, and the spool of Slurm itself."""
