"""What is solved: kernels, formulations as one QP, certificates. No algorithm."""
