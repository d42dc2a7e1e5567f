"""Files of HTCondor and jobsub jobs."""
