package sqlite

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// childVariable makes the test binary the process that may not write.
const childVariable = "PAWL_TEST_SQLITE_READONLY"

// Root may write everywhere, so the test becomes nobody first, in a process of its own.
func TestReadOnly_FileAndFolderAreNamed(t *testing.T) {
	if dir := os.Getenv(childVariable); dir != "" {
		refused(t, "a read-only file", File(filepath.Join(dir, "open", "file.db")), store.ErrReadOnly)
		// Even when nothing has to be migrated: a store that cannot write is no store.
		_, err := File(filepath.Join(dir, "open", "file.db")).Open(t.Context(), store.Settings{Migrate: store.MigrateCheck})
		wantErr(t, "a read-only file that is up to date", err, store.ErrReadOnly)
		refused(t, "a read-only folder", File(filepath.Join(dir, "closed", "work.db")), store.ErrReadOnly)
		refused(t, "a new file in a read-only folder", File(filepath.Join(dir, "closed", "new.db")), store.ErrReadOnly)
		return
	}
	dir, err := os.MkdirTemp("", "pawl-readonly") // t.TempDir is closed to nobody
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, path := range []string{filepath.Join(dir, "open", "file.db"), filepath.Join(dir, "closed", "work.db")} {
		if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		s := open(t, File(path))
		s.mustEnqueue(t, draft())
		s.Close()
		if err := os.Chmod(path, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range map[string]os.FileMode{dir: 0o755, filepath.Join(dir, "open"): 0o777, filepath.Join(dir, "closed"): 0o555} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "test.binary") // go test builds it where nobody may not look
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, data, 0o755); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(binary, "-test.run=^TestReadOnly_FileAndFolderAreNamed$")
	child.Dir = dir
	child.Env = append(os.Environ(), childVariable+"="+dir)
	if os.Geteuid() == 0 {
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNetworkFS_TheErrorNamesTheKind(t *testing.T) {
	before := lite.StatFS
	defer func() { lite.StatFS = before }()
	lite.StatFS = func(_ string, st *syscall.Statfs_t) error { st.Type = 0x6969; return nil }
	err := refused(t, "a file on NFS", newFile(t), store.ErrNetworkFS)
	if !strings.Contains(err.Error(), "NFS") {
		t.Errorf("%v does not name NFS", err)
	}
	open(t, newFile(t, Options{TrustNetworkLocks: true}))
}
