package sqlite

import (
	"slices"

	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/claims"
	"github.com/pawlwork/pawl/store/sqlite/internal/groups"
	"github.com/pawlwork/pawl/store/sqlite/internal/intents"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/limits"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/store/sqlite/internal/metrics"
	"github.com/pawlwork/pawl/store/sqlite/internal/operations"
	"github.com/pawlwork/pawl/store/sqlite/internal/schedules"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// tables are all tables of a database: those of the store itself, and of its rooms.
var tables = slices.Concat([]table.Table{
	{Name: "pawl_schema", Key: []string{"only"}, Shared: true},
	// It stays when the namespace is erased: processes that have it open know its
	// number, and numbers of workers must not come again.
	{Name: "pawl_namespace", Key: []string{"id"}, Ours: []string{"name"}, Shared: true},
}, settings.Tables, workers.Tables, jobs.Tables, claims.Tables, intents.Tables,
	operations.Tables, schedules.Tables, limits.Tables, metrics.Tables, log.Tables, groups.Tables)
