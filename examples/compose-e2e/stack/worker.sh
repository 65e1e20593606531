# Turns every job into upper case, forever.
while :; do
  for job in /jobs/in/*; do
    [ -f "$job" ] || continue
    tr '[:lower:]' '[:upper:]' <"$job" >"/jobs/out/.${job##*/}" && mv "/jobs/out/.${job##*/}" "/jobs/out/${job##*/}" && rm "$job"
    echo "${job##*/} done"
  done
  sleep 0.1
done
