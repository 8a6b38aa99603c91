package main

import (
	"bytes"
	"errors"
	"os"
)

// switches are the two files by which Debian is told what an installation must not do.
type switches struct {
	services string // exists and says no: packages start no service
	cluster  string // says no: Postgres' package makes no cluster
}

var debian = switches{
	services: "/usr/sbin/policy-rc.d",
	cluster:  "/etc/postgresql-common/createcluster.conf",
}

// What we write there for the time of one installation. The texts are also how undo knows ours from an administrator's.
const (
	noServices = "#!/bin/sh\n# Pawl's internal/testenv installs packages: start no service.\nexit 101\n"
	noCluster  = "\n# Pawl's internal/testenv installs packages: make no cluster.\ncreate_main_cluster = false\n"
)

// forbidServices keeps packages from starting their services. A policy that is there already is left alone.
func (s switches) forbidServices() error {
	file, err := os.OpenFile(s.services, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(noServices)
	return errors.Join(err, file.Close())
}

// forbidCluster keeps Debian's Postgres package from making a cluster.
func (s switches) forbidCluster() error {
	file, err := os.OpenFile(s.cluster, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(noCluster)
	return errors.Join(err, file.Close())
}

// undo puts both back as they were. It may be called again, and by the guard for a host that was killed in between.
func (s switches) undo() {
	if text, err := os.ReadFile(s.services); err == nil && string(text) == noServices {
		_ = os.Remove(s.services)
	}
	if text, err := os.ReadFile(s.cluster); err == nil {
		if before, found := bytes.CutSuffix(text, []byte(noCluster)); found {
			_ = os.WriteFile(s.cluster, before, 0o644)
		}
	}
}
