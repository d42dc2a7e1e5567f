"""Records of jobs that Sirepo's job supervisor keeps in files."""
