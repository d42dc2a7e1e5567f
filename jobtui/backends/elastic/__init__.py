"""Logs and job records that sites keep in Elasticsearch or OpenSearch."""
