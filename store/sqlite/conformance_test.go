package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/store/storetest"
)

// file makes an empty database file.
func file(t *testing.T) store.Opener { return sqlite.File(filepath.Join(t.TempDir(), "work.db")) }

// memory makes an empty database in memory.
func memory(*testing.T) store.Opener { return sqlite.Memory() }

func TestConformance_File(t *testing.T) { storetest.Run(t, storetest.Declared("sqlite file"), file) }

func TestConformance_Memory(t *testing.T) {
	storetest.Run(t, storetest.Declared("sqlite memory"), memory)
}

func TestConformance_Model(t *testing.T) { storetest.RunModel(t, 1000, memory) }

// A file and a memory play the same programs: where they differ from each other
// or from the model, one of three is wrong.
func TestConformance_ModelFile(t *testing.T) { storetest.RunModel(t, 50, file, memory) }

func TestConformance_LinearFile(t *testing.T) { storetest.RunLinear(t, file) }

func TestConformance_LinearMemory(t *testing.T) { storetest.RunLinear(t, memory) }
