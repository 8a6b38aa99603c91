package lite

import "testing"

func TestNetworkFS_IsRefusedByKind(t *testing.T) {
	for magic, kind := range map[uint32]string{0x6969: "NFS", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x65735546: "FUSE", 0x01021997: "9P"} {
		if networkKinds[magic] != kind {
			t.Errorf("%#x is %q, want %s", magic, networkKinds[magic], kind)
		}
	}
	for name, magic := range map[string]uint32{"ext4": 0xef53, "xfs": 0x58465342, "btrfs": 0x9123683e, "tmpfs": 0x01021994, "overlay": 0x794c7630, "zfs": 0x2fc12fc1} {
		if kind, remote := networkKinds[magic]; remote {
			t.Errorf("%s is refused as %s", name, kind)
		}
	}
	if kind, remote := NetworkFS(t.TempDir()); remote {
		t.Errorf("the folder of this test is on %s?", kind)
	}
}
