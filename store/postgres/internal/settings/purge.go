package settings

// ended finds versions 30 days after their last worker (code_version_ended).
const ended = `FROM pawl.code_version
	WHERE namespace = $1 AND ended IS NOT NULL AND ended < {now} - interval '30 days'
	ORDER BY ended`

// PurgeVersions removes at most $2 of them, without waiting for anybody.
const PurgeVersions = `DELETE FROM pawl.code_version
WHERE ctid = ANY (ARRAY(
	SELECT ctid
	` + ended + `
	LIMIT $2
	FOR UPDATE SKIP LOCKED
))`

// VersionsDue says whether there is one, as a part of other statements.
const VersionsDue = `(
	SELECT 1
	` + ended + `
	LIMIT 1
) IS NOT NULL`
