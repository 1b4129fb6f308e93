"""Expert weights move to the slots that rank 0's plan gives them."""
import torch
import torch.distributed as dist


def operation(plan: torch.Tensor, w: torch.Tensor, out: torch.Tensor) -> None:
    """plan: [world * slots], that of rank 0 counts; w, out: [slots, words] in int32."""
    rank, world, slots = dist.get_rank(), dist.get_world_size(), w.shape[0]
    plan = plan.clone()
    dist.broadcast(plan, src=0)
    plan = plan.tolist()
    work = []
    for new, old in enumerate(plan):
        if old // slots == rank and new // slots == rank:
            out[new % slots].copy_(w[old % slots])
        elif old // slots == rank:
            work.append(dist.P2POp(dist.isend, w[old % slots], new // slots))
        elif new // slots == rank:
            work.append(dist.P2POp(dist.irecv, out[new % slots], old // slots))
    for one in dist.batch_isend_irecv(work) if work else []:
        one.wait()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for slots, quads in ((8, 512), (8, 8192)):
        plan = torch.randperm(world * slots, device="cuda")
        w = torch.randint(0, 2**31, (slots, 4 * quads), dtype=torch.int32, device="cuda")
        operation(plan, w, torch.empty_like(w))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
