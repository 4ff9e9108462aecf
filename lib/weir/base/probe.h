/*
 * probe.h - static probes for tracers (perf, bpftrace, SystemTap, gdb), named weir:<probe>;
 * docs/profiling.md lists them.
 *
 * In a build with -Dprobes=enabled, a probe is one nop, on which a tracer puts a breakpoint. A note
 * in the object file says where the arguments are. In other builds a probe is no code, and its
 * arguments are not even evaluated. Probes are only on slow paths.
 */
#ifndef WEIRI_PROBE_H
#define WEIRI_PROBE_H

#ifdef WEIRI_PROBES
#include <sys/sdt.h>
#define WEIRI_PROBE1(name, a) DTRACE_PROBE1(weir, name, a)
#define WEIRI_PROBE2(name, a, b) DTRACE_PROBE2(weir, name, a, b)
#else
#define WEIRI_PROBE1(name, a) ((void)sizeof(a))
#define WEIRI_PROBE2(name, a, b) ((void)sizeof(a), (void)sizeof(b))
#endif

#endif
