# sbx_killer is a script for a place where a command's processes are visible: it kills those with the mark $1 in their
# environment, their children and their sessions, until none is left, and spares itself and the processes of the other
# arguments. A process that drops the mark is still somebody's child or in somebody's session; the processes of others never
# have it. The killer's own session may be that of whoever starts commands: it counts only if a spared process leads it. Where the image has nothing but a shell, that reads the environments itself: it skips the zeros between them.
# shellcheck disable=SC2016
sbx_killer='
sbx_want=SANDBOXER_EXEC=$1
shift
read -r sbx_self sbx_line </proc/self/stat 2>/dev/null || exit 1
sbx_spared=" $* $sbx_self " sbx_round=0 sbx_zero=
set -- ${sbx_line##*) }
sbx_home=$4
case $sbx_spared in *" $sbx_home "*) sbx_home= ;; esac
printf "a\000b\000" | grep -qzx b 2>/dev/null && sbx_zero=1
sbx_marked() {
	if [ -n "$sbx_zero" ]; then
		( cd /proc && grep -lzxF "$sbx_want" [0-9]*/environ 2>/dev/null )
	else
		for sbx_file in /proc/[0-9]*/environ; do
			while read -r sbx_line || [ -n "$sbx_line" ]; do
				case $sbx_line in *"$sbx_want"*) echo "${sbx_file#/proc/}"; break ;; esac
			done 2>/dev/null <"$sbx_file"
		done
	fi
}
while :; do
	sbx_list=" "
	for sbx_file in $(sbx_marked); do
		sbx_pid=${sbx_file%%/*}
		case $sbx_spared in *" $sbx_pid "*) ;; *) sbx_list="$sbx_list$sbx_pid " ;; esac
	done
	sbx_sessions=" " sbx_grown=1
	while [ -n "$sbx_grown" ]; do
		sbx_grown=
		for sbx_file in /proc/[0-9]*/stat; do
			read -r sbx_line 2>/dev/null <"$sbx_file" || continue
			sbx_pid=${sbx_file#/proc/} sbx_pid=${sbx_pid%/stat}
			case $sbx_spared in *" $sbx_pid "*) continue ;; esac
			set -- ${sbx_line##*) }
			[ "$1" != Z ] || continue
			case $sbx_list in *" $sbx_pid "*)
				case $sbx_sessions in *" $4 "*) ;; *) [ "$4" -le 1 ] || [ "$4" = "$sbx_home" ] || { sbx_sessions="$sbx_sessions$4 " sbx_grown=1; } ;; esac
				continue ;;
			esac
			case $sbx_list in *" $2 "*) sbx_list="$sbx_list$sbx_pid " sbx_grown=1; continue ;; esac
			case $sbx_sessions in *" $4 "*) sbx_list="$sbx_list$sbx_pid " sbx_grown=1 ;; esac
		done
	done
	[ "$sbx_list" != " " ] || exit 0
	kill -9 $sbx_list 2>/dev/null
	sbx_round=$((sbx_round + 1))
	[ "$sbx_round" -lt 40 ] || exit 1
	[ "$sbx_round" -lt 3 ] || sleep 0.1 2>/dev/null || sleep 1 2>/dev/null
done
'
