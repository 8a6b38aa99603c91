package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/store/storetest"
)

// file makes an empty database file.
func file(t *testing.T) store.Opener {
	return spoiler{sqlite.File(filepath.Join(t.TempDir(), "work.db"))}
}

// memory makes an empty database in memory.
func memory(*testing.T) store.Opener { return spoiler{sqlite.Memory()} }

// spoiler damages rows through the store's own transactions.
type spoiler struct{ store.Opener }

var spoiling = map[storetest.Part]string{
	storetest.Failures:         "UPDATE pawl_job SET failures = CAST('not frames' AS BLOB) WHERE id = $1",
	storetest.ArchivedFailures: "UPDATE pawl_job_archive SET failures = CAST('not frames' AS BLOB) WHERE id = $1",
	storetest.Tags:             "UPDATE pawl_job SET tags = 'not JSON' WHERE id = $1",
	storetest.Capabilities:     "UPDATE pawl_job SET capabilities = 'not JSON' WHERE id = $1",
	storetest.State:            "UPDATE pawl_job SET state = 99 WHERE id = $1",
	storetest.Due:              "UPDATE pawl_job SET due = 9223372036854775807 WHERE id = $1",
	storetest.Offer:            "UPDATE pawl_worker SET offer = 'not JSON' WHERE id = $1",
	storetest.WorkerQueues:     "UPDATE pawl_worker SET queues = 'not JSON' WHERE id = $1",
	storetest.Totals:           "UPDATE pawl_worker SET totals = 'not JSON' WHERE id = $1",
}

func (spoiler) Spoil(ctx context.Context, s store.Store, part storetest.Part, id any) error {
	return storetest.SpoilBySQL(ctx, s, spoiling, part, id)
}

func (spoiler) Words() storetest.Words {
	return storetest.Words{
		Replacer: strings.NewReplacer("<", "pawl_", ">", "", "@true", "1", "@past", "1", "@future", "9000000000000000",
			"@never", "9223372036854775807", "@junk", "x'5b5d'", "@names", "'a,b'", "@place", "pawl_shelf", "@order", "number", "@first", "1"),
		ID: func(id job.ID) string { return fmt.Sprintf("x'%x'", id[:]) },
	}
}

func TestConformance_File(t *testing.T) { storetest.Run(t, storetest.Declared("sqlite file"), file) }

func TestConformance_Memory(t *testing.T) {
	storetest.Run(t, storetest.Declared("sqlite memory"), memory)
}

func TestConformance_Model(t *testing.T) { storetest.RunModel(t, 1000, memory) }

// A file and a memory play the same programs: where they differ from each other
// or from the model, one of three is wrong.
func TestConformance_ModelFile(t *testing.T) { storetest.RunModel(t, 50, file, memory) }

// Deploys, rollbacks, crashes and operators: what holds is what a model says that
// knows neither tables nor rules of ours.
func TestJ30_DeploysAgreeWithAModel(t *testing.T) { storetest.RunControlModel(t, 300, memory) }

func TestJ30_DeploysAgreeWithAModelFile(t *testing.T) { storetest.RunControlModel(t, 20, file) }

func TestConformance_LinearFile(t *testing.T) { storetest.RunLinear(t, file) }

func TestConformance_LinearMemory(t *testing.T) { storetest.RunLinear(t, memory) }

func TestConformance_Spaces(t *testing.T) {
	storetest.Run(t, storetest.Declared("sqlite spaces"), func(t *testing.T) store.Opener {
		spaces := sqlite.NewSpaces(filepath.Join(t.TempDir(), "work.db"))
		t.Cleanup(func() {
			if err := spaces.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return spoiler{spaces}
	})
}
