/** The list of the screens. */
#include "ui/screens/screens.h"

#include "ui/screens/cluster/cluster.h"
#include "ui/screens/explain/explain.h"
#include "ui/screens/gantt/gantt.h"
#include "ui/screens/model/model.h"
#include "ui/screens/plans/plans.h"
#include "ui/screens/strategies/strategies.h"
#include "ui/screens/what_if/what_if.h"

static const struct hv_view_ops *const screens[] = {
    &hv_screen_cluster, &hv_screen_model,   &hv_screen_strategies, &hv_screen_plans,
    &hv_screen_gantt,   &hv_screen_explain, &hv_screen_what_if,    &hv_screen_console,
    &hv_screen_welcome, &hv_screen_import,
};

const struct hv_view_ops *const *hv_ui_screens(size_t *n)
{
    *n = HV_COUNT(screens);
    return screens;
}
