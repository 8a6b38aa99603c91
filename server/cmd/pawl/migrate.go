package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/sqlite"
)

// migrateCommand has what is done to schemas. It works on a store, never by a server.
func (a *app) migrateCommand() *cobra.Command {
	sql := &cobra.Command{
		Use: "sql sqlite|postgres", Short: "Print the steps of the schema as SQL, for a tool of your own", Args: counted(1, 1), RunE: a.migrateSQL,
		ValidArgs: []string{"sqlite", "postgres"},
	}
	sql.Flags().String("schema", "pawl", "`name` of the schema, with Postgres")
	sql.Flags().Int("after", 0, "only the steps after this `version`")
	return group("migrate", "The schema of a store: look, bring up to date", "",
		&cobra.Command{Use: "status", Short: "Say whether this build can use a store's schema", Args: counted(0, 0), RunE: a.migrateStatus},
		&cobra.Command{Use: "up", Short: "Bring a store's schema up to date, or make it", Args: counted(0, 0), RunE: a.migrateUp},
		sql,
	)
}

// migrated is what became of a look at a schema.
type migrated struct {
	State  string `json:"state"` // current, older, newer
	Detail string `json:"detail"`
}

func (a *app) migrateStatus(cmd *cobra.Command, _ []string) error {
	err := a.migrateOpen(cmd, store.MigrateCheck)
	m := migrated{"current", "this build can use the schema as it is"}
	switch {
	case errors.Is(err, pawl.ErrSchemaOlder):
		m = migrated{"older", err.Error()}
	case errors.Is(err, pawl.ErrSchemaNewer):
		m = migrated{"newer", err.Error()}
	case err != nil:
		return err
	}
	if err := a.migrateTell(m); err != nil {
		return err
	}
	if m.State != "current" {
		return &coded{exitFailed, m.State, fmt.Errorf("the schema is %s than this build", m.State)}
	}
	return nil
}

func (a *app) migrateUp(cmd *cobra.Command, _ []string) error {
	before := a.migrateOpen(cmd, store.MigrateCheck)
	if before == nil {
		return a.migrateTell(migrated{"current", "it was up to date already"})
	}
	if err := a.migrateOpen(cmd, store.MigrateAuto); err != nil {
		return err
	}
	return a.migrateTell(migrated{"current", "it was brought up to date"})
}

func (a *app) migrateTell(m migrated) error {
	if a.json {
		return json.NewEncoder(a.out).Encode(m)
	}
	_, err := fmt.Fprintf(a.out, "%s: %s\n", m.State, clean(m.Detail))
	return err
}

func (a *app) migrateOpen(cmd *cobra.Command, mode store.Migrate) error {
	v, err := a.resolve(cmd)
	if err != nil {
		return err
	}
	if v.text(setStore) == "" && v.text(setStoreFile) == "" {
		return usage("migrate: needs a store: set PAWL_STORE, or --store-file")
	}
	e, _, err := a.openEngine(cmd.Context(), v, "", pawl.Config{Migrate: mode, Logger: a.logger()})
	if err != nil {
		return err
	}
	return e.Close()
}

func (a *app) migrateSQL(cmd *cobra.Command, args []string) error {
	type step struct {
		Version int    `json:"version"`
		Oldest  int    `json:"oldest"`
		Name    string `json:"name"`
		SQL     string `json:"sql"`
	}
	var steps []step
	switch args[0] {
	case "sqlite":
		for _, m := range sqlite.Migrations() {
			steps = append(steps, step(m))
		}
	case "postgres":
		schema, _ := cmd.Flags().GetString("schema")
		for _, m := range postgres.Migrations(schema) {
			steps = append(steps, step(m))
		}
	default:
		return usage("migrate sql %q: must be sqlite or postgres", args[0])
	}
	after, _ := cmd.Flags().GetInt("after")
	for _, s := range steps {
		if s.Version <= after {
			continue
		}
		if a.json {
			if err := json.NewEncoder(a.out).Encode(s); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(a.out, "-- step %d: %s\n%s\n", s.Version, s.Name, s.SQL); err != nil {
			return err
		}
	}
	return nil
}
