#!/bin/sh
# Installs Debian packages as root without letting them start or create their own servers, and takes back what it
# changed for that. Arguments: name:oldest-version ...
set -eu

policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/nestjs-idempotent-consumer.conf
mark='# temporary, of nestjs-idempotent-consumer'
lock='-o DPkg::Lock::Timeout=300'
export DEBIAN_FRONTEND=noninteractive

cleanup() {
  rm -f "$cluster"
  if grep -qsF "$mark" "$policy"; then rm -f "$policy"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

apt-get update -q $lock

names=''
for wanted in "$@"; do
  name=${wanted%:*}
  oldest=${wanted#*:}
  version=$(apt-cache show --no-all-versions "$name" | sed -n 's/^Version: \([0-9]*:\)\{0,1\}//p')
  if ! dpkg --compare-versions "$version" ge "$oldest"; then
    echo "This system's package $name is ${version:-missing}; at least $oldest is needed." >&2
    exit 1
  fi
  names="$names $name"
done

# An administrator's own policy stays; his servers then start as he wants it.
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
  chmod 755 "$policy"
fi
mkdir -p "$(dirname "$cluster")"
echo 'create_main_cluster = false' >"$cluster"

# What an interrupted installation has left half-done, ours for instance, stops every later one.
dpkg --configure -a
apt-get install -q -y --no-install-recommends $lock -o Dpkg::Options::=--force-confold $names

# Nor at the next boot: nobody asked for a broker or a pooler on the default port.
for name in $names; do
  case "$name" in
    rabbitmq-server | pgbouncer) update-rc.d "$name" disable ;;
  esac
done
