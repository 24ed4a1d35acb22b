"""Sessions of users and their quotas: `open_messages` queues, `index` stores states."""
