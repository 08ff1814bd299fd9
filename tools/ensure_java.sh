#!/bin/sh
# Spark needs Java 17 or newer: say so, or install it where this user may.
set -u

major() {
    "$1" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

java=${JAVA_HOME:+$JAVA_HOME/bin/java}
java=${java:-$(command -v java || true)}
found=$([ -n "$java" ] && [ -x "$java" ] && major "$java")
[ "${found:-0}" -ge 17 ] && exit 0

echo "Java 17 or newer is needed; found: ${java:-none} ${found:+(version $found)}"
if [ -z "${JAVA_HOME:-}" ] && command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ]; then
    echo "installing openjdk-17-jre-headless"
    apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless && exit 0
fi
echo "Install it (Debian and Ubuntu: sudo apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17),"
echo "or let JAVA_HOME name one, and run the command again."
exit 1
