package sqlite

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// disk is a file system whose writes or flushes fail when a test says so.
type disk struct {
	vfs.VFS
	full     atomic.Bool  // no write to the log succeeds
	room     atomic.Int64 // while full: writes to the log that still succeed
	noFlush  atomic.Bool  // no flush of the log succeeds
	flushes  atomic.Int64
	noRoomDB atomic.Bool // no write to the database itself succeeds: checkpoints fail
}

// newDisk registers a disk under the test's name.
func newDisk(t *testing.T) (*disk, string) {
	name := "faulty-" + strings.Map(func(r rune) rune {
		if r == '/' || r == '#' || r == ' ' {
			return '-'
		}
		return r
	}, t.Name())
	d := &disk{VFS: vfs.Find("os")}
	vfs.Register(name, d)
	t.Cleanup(func() { vfs.Unregister(name) })
	return d, name
}

func (d *disk) Open(string, vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return nil, 0, sqlite3.CANTOPEN // SQLite uses OpenFilename where there is one
}

func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := d.VFS.(vfs.VFSFilename).OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &diskFile{File: f, disk: d, log: flags&vfs.OPEN_WAL != 0}, flags, nil
}

type diskFile struct {
	vfs.File
	disk *disk
	log  bool
}

func (f *diskFile) WriteAt(b []byte, off int64) (int, error) {
	if f.log && f.disk.full.Load() && f.disk.room.Add(-1) < 0 || !f.log && f.disk.noRoomDB.Load() {
		return 0, vfs.SystemError(syscall.ENOSPC, sqlite3.FULL)
	}
	return f.File.WriteAt(b, off)
}

func (f *diskFile) Sync(flags vfs.SyncFlag) error {
	if f.log {
		f.disk.flushes.Add(1)
		if f.disk.noFlush.Load() {
			return syscall.EIO
		}
	}
	return f.File.Sync(flags)
}

func (f *diskFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *diskFile) LockState() vfs.LockLevel { return f.File.(vfs.FileLockState).LockState() }
