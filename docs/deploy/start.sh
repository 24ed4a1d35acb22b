#!/bin/sh
# Program of the container: makes a project in an empty volume, then serves it.
set -eu
[ -e taskweaver_config.json ] || taskweaver init .
exec taskweaver -p . serve --host 0.0.0.0 --port 8000 "$@"
