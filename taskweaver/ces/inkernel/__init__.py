"""Code inside a kernel process, in part of the host too; `overview` looks at files for prompts."""
