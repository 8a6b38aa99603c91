package main

import "context"

// scene is a page in a state worth a look.
type scene struct {
	name string
	path func(ctx context.Context, d *demo) (string, error)
	do   func(b *browser) error // once it is open [nothing]
}

// scenes are all of them. What runs only for a while comes first.
var scenes = []scene{
	{name: "job-running", path: jobOf("report.nightly", "running"), do: underWay},
	{name: "overview", path: page("/")},
	{name: "jobs", path: page("/jobs")},
	{name: "jobs-scheduled", path: page("/jobs/scheduled")},
	{name: "jobs-retries", path: page("/jobs/retries")},
	{name: "jobs-dead", path: page("/jobs/dead")},
	{name: "bulk", path: page("/jobs/dead"), do: openBulk},
	{name: "job", path: jobOf("invoice.render", "dead")},
	{name: "queues", path: page("/queues")},
	{name: "queue", path: page("/queues/mail")},
	{name: "cron", path: page("/cron")},
	{name: "workers", path: page("/workers"), do: openWorker},
	{name: "streams", path: page("/streams")},
	{name: "topic", path: page("/streams/orders.placed"), do: openEvent},
	{name: "limits", path: page("/limits")},
	{name: "streams", path: page("/streams")},
	{name: "topic", path: page("/streams/orders.placed")},
	{name: "group", path: page("/groups/warehouse")},
	{name: "group-parked", path: page("/groups/loyalty"), do: openParked},
	{name: "services", path: page("/services")},
	{name: "audit", path: page("/audit")},
	{name: "settings", path: page("/settings")},
}

func page(path string) func(context.Context, *demo) (string, error) {
	return func(context.Context, *demo) (string, error) { return path, nil }
}

func jobOf(kind, state string) func(context.Context, *demo) (string, error) {
	return func(ctx context.Context, d *demo) (string, error) {
		id, err := d.job(ctx, kind, state)
		return "/jobs/" + id, err
	}
}

// openBulk asks what a retry of all dead invoices would do.
func openBulk(b *browser) error {
	if err := b.click(`[hx-get*="/ask/jobs/retry"][hx-get*="invoice.render"]`); err != nil {
		return err
	}
	return b.wait(`document.querySelector("#dialog[open] h2")`)
}

// openParked looks at the event that a group has given up.
func openParked(b *browser) error {
	if err := b.click(`.parked a[data-open]`); err != nil {
		return err
	}
	return b.wait(`document.querySelector("#event") && document.querySelector("#live.on")`)
}

// underWay waits until a report has said something.
func underWay(b *browser) error {
	return b.wait(`[...document.querySelectorAll("main *")].some((e) => /^(1[5-9]|[2-4][0-9]) of 60$/.test(e.textContent.trim()))`)
}

// openEvent opens the newest.
func openEvent(b *browser) error {
	if err := b.click(`#topic-rows a[data-open]`); err != nil {
		return err
	}
	return b.wait(`document.querySelector("#event") && document.querySelector("#live.on")`)
}

// openWorker opens the busiest.
func openWorker(b *browser) error {
	if err := b.click(`.workers a[aria-expanded="false"]`); err != nil {
		return err
	}
	return b.wait(`document.querySelector(".workers .opened") && document.querySelector("#live.on")`)
}
