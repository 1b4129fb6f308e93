"""Gradients are summed by shard, one step of Adam on each shard, all new parameters on all ranks."""
import torch
import torch.distributed as dist


def operation(grad, param, m, v, params, new_m, new_v) -> None:
    """grad, params: [world, n]; all others: [n]."""
    mine = torch.empty_like(param)
    dist.reduce_scatter_tensor(mine, grad.view(-1), op=dist.ReduceOp.SUM)
    torch.add(0.875 * m, mine, alpha=0.125, out=new_m)
    torch.add(0.984375 * v.abs(), mine.square(), alpha=0.015625, out=new_v)
    q = new_m / (new_v.sqrt() + 2**-10)
    dist.all_gather_into_tensor(params.view(-1), param - 0.125 * (q + 0.03125 * param))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (1024, 8192):
        grad = torch.randint(-4, 5, (dist.get_world_size(), n), device="cuda").float()
        param, m, v = (torch.randint(0, 9, (n,), device="cuda").float() for _ in range(3))
        operation(grad, param, m, v, torch.empty_like(grad), torch.empty_like(m), torch.empty_like(v))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
