# Usage: e2e.sh JOBS. Gives jobs to the stack and checks every answer.
jobs=$1 i=1
while [ "$i" -le "$jobs" ]; do
  echo "job $i" >"/jobs/in/.new" && mv /jobs/in/.new "/jobs/in/job-$i"
  i=$((i + 1))
done

i=1
while [ "$i" -le "$jobs" ]; do
  tries=0
  until got=$(wget -q -O - "http://web:8080/job-$i" 2>/dev/null); do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "no answer to job $i" >&2; exit 1; }
    sleep 0.1
  done
  [ "$got" = "JOB $i" ] || { echo "job $i: got '$got'" >&2; exit 1; }
  rm "/jobs/out/job-$i"
  i=$((i + 1))
done

# The profile denies the network: nothing outside the stack may answer.
if wget -q -T 3 -O /dev/null http://1.1.1.1/ 2>/dev/null; then
  echo 'the network is not shut' >&2
  exit 1
fi
echo "$jobs jobs done"
