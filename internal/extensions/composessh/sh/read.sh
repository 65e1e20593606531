# Operation: the file of a snapshot on standard output; say is that of frame.sh. Variable: snapshot.

use_root
need_tools
kept_clean
exec </dev/null
kept_take -s || kept_missing
kept_data
say '{"method":"read"}'
code=0
cat <"$at/data" || code=$?
say "{\"exit\":$code}"
