"""What runs inside a kernel process. Nothing outside the kernel imports it."""
