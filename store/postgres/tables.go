package postgres

import (
	"slices"

	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
	"github.com/pawlwork/pawl/store/postgres/internal/groups"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/intents"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/limits"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/metrics"
	"github.com/pawlwork/pawl/store/postgres/internal/operations"
	"github.com/pawlwork/pawl/store/postgres/internal/schedules"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// tables are all tables of a database: those of the store itself, and of its rooms.
var tables = slices.Concat([]table.Table{
	{Name: "version", Key: []string{"one"}, Shared: true},
	// It stays when the namespace is erased: processes that have it open know its
	// number, and numbers of workers must not come again.
	{Name: "namespace", Key: []string{"id"}, Ours: []string{"name"}, Shared: true},
}, hints.Tables, settings.Tables, workers.Tables, jobs.Tables, claims.Tables,
	intents.Tables, operations.Tables, schedules.Tables, limits.Tables, metrics.Tables, log.Tables, groups.Tables)

// asks are what later rooms ask with the look for what is due.
var asks = append([]jobs.Ask{operations.Due, metrics.Due, log.Due}, claims.Due...)
