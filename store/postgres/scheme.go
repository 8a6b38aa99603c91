package postgres

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Addresses are those of libpq, "postgres://user@host/database", with three
// parameters of Pawl's own: pawl_schema, pawl_poll_only and pawl_connections.
func init() {
	store.RegisterScheme("postgres", parse)
	store.RegisterScheme("postgresql", parse)
}

// parse reads an address. No error repeats it, since it may hold a password;
// pgx hides one it can find, which it cannot in an address it does not understand.
func parse(address string) (store.Opener, error) {
	form := errors.New(`pawl: the store address must be a URL such as "postgres://user@host/database"`)
	u, err := url.Parse(address)
	if err != nil || u.Host == "" && u.Path == "" && u.RawQuery == "" {
		return nil, form
	}
	var options Options
	query := u.Query()
	if err := checkParameters(query); err != nil {
		return nil, err
	}
	options.Schema = query.Get("pawl_schema")
	if text := query.Get("pawl_poll_only"); text != "" {
		if options.PollOnly, err = strconv.ParseBool(text); err != nil {
			return nil, job.Invalid("pawl_poll_only", text, "must be true or false")
		}
	}
	if text := query.Get("pawl_connections"); text != "" {
		if options.Connections, err = strconv.Atoi(text); err != nil || options.Connections == 0 {
			return nil, job.Invalid("pawl_connections", text, "must be a number from 2 to 200")
		}
	}
	query.Del("pawl_schema")
	query.Del("pawl_poll_only")
	query.Del("pawl_connections")
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // for pgx a plus is no space
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, form
	}
	return byAddress{config: config, options: options}, nil
}

// checkParameters refuses what looks like a parameter of Pawl's and is none, or
// is given twice: the server would be sent it as a setting, or one value would be
// passed over. Values are not repeated.
func checkParameters(query url.Values) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !strings.HasPrefix(strings.ToLower(name), "pawl_"):
		case name != "pawl_schema" && name != "pawl_poll_only" && name != "pawl_connections":
			errs = append(errs, job.Invalid("parameter of the store address", name, "must be pawl_schema, pawl_poll_only or pawl_connections; others are fields of postgres.Options"))
		case len(query[name]) > 1:
			errs = append(errs, job.Invalid("parameter of the store address", name, "must be given once"))
		}
	}
	return errors.Join(errs...)
}

// byAddress opens a store with a pool that ends with it.
type byAddress struct {
	config  *pgxpool.Config
	options Options
}

// Open connects, and opens the store on the connection.
func (a byAddress) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	config := a.config.Copy()
	if a.options.PollOnly {
		pg.Describe(config, true)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, pg.Unavailable(err)
	}
	opened, err := (&Spaces{pool: pool, options: a.options, alone: true, ownsPool: true}).Open(ctx, settings)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return opened, nil
}
