/*
 * test_shm_latest.c - the newest value between processes.
 */
#include "shm_kit.h"

Test(shm_latest, placeholder)
{
}
