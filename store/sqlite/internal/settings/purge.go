package settings

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// purgeVersions removes versions long after their last worker.
//   - pawl_code_version_ended finds the oldest, the primary key removes them.
const purgeVersions = `DELETE FROM pawl_code_version
	WHERE namespace = ?1 AND (owner, version) IN (
		SELECT owner, version
		FROM pawl_code_version
		WHERE namespace = ?1 AND ended IS NOT NULL AND ended < ?2
		ORDER BY ended
		LIMIT ?3)`

// VersionExpired finds a version whose last worker is long gone at ?2.
//   - A seek on pawl_code_version_ended. 30 days are store.KeepVersion.
const VersionExpired = `SELECT 1
		FROM pawl_code_version
		WHERE namespace = ?1 AND ended IS NOT NULL AND ended < ?2 - 30 * 86400000000`

// PurgeVersions removes up to limit versions whose time is over.
func PurgeVersions(t *lite.Session, limit int) (int64, error) {
	return t.On(purgeVersions).Int(t.Now - store.KeepVersion.Microseconds()).Int(int64(limit)).Changes()
}
