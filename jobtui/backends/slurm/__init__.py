"""Slurm through its own commands: squeue, sacct and scontrol, here or on another host."""
