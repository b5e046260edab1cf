# A private PostgreSQL server on a socket in a folder of its own; sourced by the test scripts.
#   start_postgres FOLDER   sets POSTGRES_ADDRESS; fails with a message where PostgreSQL is not installed
#   stop_postgres
POSTGRES_FOLDER=

postgres_program() {
    command -v "$1" || ls -d /usr/lib/postgresql/*/bin/"$1" 2>/dev/null | sort -V | tail -1
}

start_postgres() {
    local folder=$1 initdb pg_ctl run=()
    initdb=$(postgres_program initdb)
    pg_ctl=$(postgres_program pg_ctl)
    if [ -z "$initdb" ] || [ -z "$pg_ctl" ]; then
        echo "SKIPPED: PostgreSQL is not installed (Debian: apt install postgresql)"
        return 1
    fi
    mkdir -p "$folder"
    if [ "$(id -u)" = 0 ]; then # the server refuses to run as root
        id postgres >/dev/null 2>&1 || { echo "SKIPPED: no user postgres to run the server"; return 1; }
        chown postgres "$folder"
        chmod a+x "$(dirname "$folder")"
        run=(runuser -u postgres --)
    fi
    ${run[@]+"${run[@]}"} "$initdb" -D "$folder/data" -U qdc -A trust -N >"$folder.log" 2>&1
    ${run[@]+"${run[@]}"} "$pg_ctl" -D "$folder/data" -w -t 60 -l "$folder/data/server.log" \
        -o "-k $folder -c listen_addresses='' -c fsync=off" start >>"$folder.log" 2>&1
    POSTGRES_FOLDER=$folder
    POSTGRES_ADDRESS="postgresql://qdc@/postgres?host=$folder"
}

stop_postgres() {
    [ -n "$POSTGRES_FOLDER" ] || return 0
    local pg_ctl run=()
    pg_ctl=$(postgres_program pg_ctl)
    [ "$(id -u)" != 0 ] || run=(runuser -u postgres --)
    ${run[@]+"${run[@]}"} "$pg_ctl" -D "$POSTGRES_FOLDER/data" -m immediate stop >/dev/null 2>&1 || true
    POSTGRES_FOLDER=
}
