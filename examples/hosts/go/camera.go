package weir

// The foreign thread of the tests. It is here because cgo does not serve files of tests.

/*
#cgo CFLAGS: -I${SRCDIR}/..
#cgo LDFLAGS: -lhosts_camera
#include <stdlib.h>
#include "camera.h"
*/
import "C"

import "unsafe"

const wouldBlock = C.WEIR_WOULD_BLOCK

type camera struct{ c *C.camera }

func startCamera(q *Queue, count int, cause string) *camera {
	text := C.CString(cause)
	defer C.free(unsafe.Pointer(text))
	return &camera{C.camera_start(q.c, C.int(count), text)}
}

func (c *camera) stop() int { return int(C.camera_stop(c.c)) }

func (v *Var) show(pixel float64) bool { return bool(C.camera_show(v.c, C.double(pixel))) }

func framesAlive() int { return int(C.camera_frames_alive()) }

func releasedBy() int { return int(C.camera_released_by()) }

func thisThread() int { return int(C.camera_this_thread()) }
