"""Streams of tasks and simulated solvers: to try a memory out, and to measure one."""
