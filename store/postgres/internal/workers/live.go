package workers

import "strings"

// newestBeat is the beat of a worker, and where its row is. The rows that earlier beats
// have left come before it, and are not visited.
//
//   - worker_beat_pkey, from its end.
const newestBeat = `
		SELECT beat.ctid AS place, beat.at
		FROM pawl.worker_beat AS beat
		WHERE beat.namespace = {namespace} AND beat.worker = {worker}
		ORDER BY beat.at DESC
		LIMIT 1`

// beatOf is newestBeat of a worker.
func beatOf(namespace, worker string) string {
	return strings.NewReplacer("{namespace}", namespace, "{worker}", worker).Replace(newestBeat)
}

// renewable is true of the beat b that the worker $2 has, and of a later one: a statement
// that waits for another beat of the same worker goes on with what that has written. It is
// compared with the time, which bounds the entries that are visited.
var renewable = `b.namespace = $1 AND b.worker = $2 AND b.at >= (
		SELECT newest.at
		FROM (` + beatOf("$1", "$2") + `
		) AS newest
	)`

// live are the workers of the namespace that have neither left nor been lost and have
// beaten lately, as w, with their beats, as b.
//
//   - worker_live, in its order.
var live = `FROM pawl.worker AS w
CROSS JOIN LATERAL (` + beatOf("$1", "w.id") + `
) AS b
WHERE w.namespace = $1 AND w.lost IS NULL AND w.id > 0
	AND b.at > {now} - w.lost_after * interval '1 microsecond'`
