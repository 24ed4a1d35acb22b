"""Requests to endpoints: connections, deadlines, sign-in, failures and retries."""
